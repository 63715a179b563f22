"""The similarity from a graph of neighbours, without vectors."""
