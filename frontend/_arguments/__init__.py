"""Arguments of users' functions: checked, flattened, chosen, traced."""
