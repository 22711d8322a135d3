"""`axir completion`: the script for shell completion."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from .group import JobError, Verb, verbose_option


@click.command(cls=Verb)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
@verbose_option
def completion(context: click.Context, shell: str) -> None:
    """Print a script that makes a shell complete verbs, options and files.

    Examples:
      axir completion bash >> ~/.bashrc
      axir completion zsh >> ~/.zshrc
      axir completion fish > ~/.config/fish/completions/axir.fish
    """
    found = get_completion_class(shell)
    if found is None:
        raise JobError(f"There is no completion for {shell}.")
    click.echo(found(context.find_root().command, {}, "axir", "_AXIR_COMPLETE").source())
