"""Small valid files of every format that is read, damaged at random: read as an independent reader does, or refused."""
