"""Operations of cells, as values."""
