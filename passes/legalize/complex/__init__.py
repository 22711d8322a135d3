"""Operations on complex numbers, as operations on their parts."""
