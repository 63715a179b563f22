"""Miniatures of data sets, under the names and in the formats that their publishers gave them."""
