"""One loss, one function: tensors in, one number out. None of them sees a label."""
