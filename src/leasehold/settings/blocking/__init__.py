"""The face of settings for threads, generated from the other half."""
