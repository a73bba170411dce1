"""Pictures by the million: packed one after the other into a few large files, here or behind a URL.

A folder of shards holds `shards.json` (what there is) and `shard-00000.bin` and so on. A shard is the files of its
pictures, one after the other as they were; then an index, and at its very end where the index begins:

    picture files | offsets: int64, pictures + 1 | names: JSON | start of the offsets, pictures: int64 | b"TUSKSHRD"

So a shard can be read from any place in it, and also by itself.
"""
