"""The face of access keys for tasks: written by hand, and what the blocking half is generated from."""
