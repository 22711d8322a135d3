"""`axir info`, `cache`, `passes` and `completion`: properties of the machine and of axir."""

from __future__ import annotations

import dataclasses
import inspect
import json

import click
from click.shell_completion import get_completion_class

from axir._devices.placement import versions
from axir.dialect.core.annotations import Options, UserObject
from axir.dialect.core.config import config
from axir.dialect.core.options import OPTIONS
from axir.passes.framework.base import Pass
from axir.passes.framework.registry import find_pass, pass_names
from axir.runtime import DeviceNotFoundError, cache_directory, devices

from .group import JobError, Verb, verbose_option

_PLATFORMS = ("cpu", "vulkan", "cuda")


@click.command(cls=Verb)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@verbose_option
def info(as_json: bool) -> None:
    """Show versions, devices, the cache folder and options.

    Examples:
      axir info
      axir info --json
    """
    facts = {
        "versions": versions(),
        "devices": {name: _devices(name) for name in _PLATFORMS},
        "cache": _cache_facts(),
        "options": {
            name: config.read(name) for name, option in OPTIONS.items() if option.has_effect
        },
    }
    if as_json:
        click.echo(json.dumps(facts, indent=2, default=str))
        return
    for title, group in facts.items():
        click.echo(title)
        width = max(map(len, group))
        for name, value in group.items():
            click.echo(f"  {name:<{width}}  {value}")


def _devices(name: str) -> str:
    try:
        return ", ".join(f"{device} ({device.device_kind})" for device in devices(name))
    except DeviceNotFoundError as error:
        return f"none: {error.message}"


def _programs() -> list[UserObject]:
    folder = cache_directory()
    return [path for path in folder.glob("*.program") if path.is_file()] if folder.is_dir() else []


def _cache_facts() -> dict[str, Options]:
    programs = _programs()
    return {
        "folder": str(cache_directory()),
        "programs": len(programs),
        "bytes": sum(path.stat().st_size for path in programs),
    }


@click.command(cls=Verb)
@click.argument("action", type=click.Choice(["show", "clear"]), default="show")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@verbose_option
def cache(action: str, as_json: bool) -> None:
    """Show or clear the cache of compiled programs.

    Examples:
      axir cache
      axir cache clear
    """
    facts = _cache_facts()
    size = f"{facts['programs']} programs, {facts['bytes']:,} bytes"
    if action == "show" and as_json:
        click.echo(json.dumps(facts))
        return
    if action == "show":
        click.echo(f"{facts['folder']}: {size}")
        return
    for path in _programs():
        path.unlink(missing_ok=True)
    click.echo(f"cleared {facts['folder']}: {size}", err=True)


@click.command(cls=Verb)
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@verbose_option
def passes(name: str | None, as_json: bool) -> None:
    """List the passes with their options, or show the documentation of one.

    Examples:
      axir passes
      axir passes vmap
    """
    if as_json:
        names = pass_names() if name is None else [name]
        click.echo(json.dumps({each: _described(find_pass(each)) for each in names}, indent=2))
        return
    if name is not None:
        found = find_pass(name)
        click.echo(f"{_usage(found)}\n\n{inspect.getdoc(found)}")
        return
    width = max(map(len, pass_names()))
    for each in pass_names():
        found = find_pass(each)
        click.echo(f"{each:<{width}}  {found.summary()}")
        options = _options(found)
        if options:
            click.echo(f"{'':<{width}}  options: {', '.join(options)}")


def _described(found: type[Pass]) -> dict[str, Options]:
    defaults = {
        field.name: None if field.default is dataclasses.MISSING else _text(field.default)
        for field in dataclasses.fields(found)
    }
    return {"summary": found.summary(), "options": defaults}


def _usage(found: type[Pass]) -> str:
    options = _options(found)
    return f"{found.name}{{{','.join(options)}}}" if options else found.name


def _options(found: type[Pass]) -> list[str]:
    listed = []
    for field in dataclasses.fields(found):
        is_required = field.default is dataclasses.MISSING
        listed.append(f"{field.name}=…" if is_required else f"{field.name}={_text(field.default)}")
    return listed


def _text(value: object) -> str:
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


# Completion ---------------------------------------------------------------------------------------


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
