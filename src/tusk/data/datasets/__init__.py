"""One file per dataset: each registers itself (see `tusk.data.registry`), and all are light to import."""
