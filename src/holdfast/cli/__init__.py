"""The command `holdfast`: one module per noun, each imported only when it is called."""
