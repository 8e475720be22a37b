"""The face of access keys for threads, generated from the other half."""
