"""The face of settings for tasks: written by hand, and what the blocking half is generated from."""
