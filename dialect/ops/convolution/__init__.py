"""Convolutions: `conv_general_dilated`, and the functions made of it."""
