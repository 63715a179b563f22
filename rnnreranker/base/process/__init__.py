"""The process that a command is: its signals, what it is at, its threads of BLAS."""
