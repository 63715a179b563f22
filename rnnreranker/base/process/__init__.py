"""The process that a command is: what it is at, its threads of BLAS."""
