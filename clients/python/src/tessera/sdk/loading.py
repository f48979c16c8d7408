"""Imports the module of a service, and finds the service in it."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from types import ModuleType
from typing import Any

from .executable import HostedService, ServiceError
from .hosted import HostedClass
from .services import definition_of

_DISTRIBUTIONS = {
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "fitz": "pymupdf",
    "google.protobuf": "protobuf",
    "jwt": "pyjwt",
    "magic": "python-magic",
    "OpenSSL": "pyopenssl",
    "PIL": "pillow",
    "psycopg2": "psycopg2-binary",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
"""Packages that are installed under another name than they are imported by."""


def load_service(module: str, name: str | None = None) -> HostedService:
    """Loads the service of a file, or of a module by its dotted name.

    ``name`` is the service's name in it; without, it must be the only one. Raises
    ``ServiceError`` with one message for the author.
    """
    loaded = _import_module(module)
    found = _find(loaded, name, module)
    definition = definition_of(found)
    if definition is not None:
        return HostedClass(definition)
    adapter = importlib.import_module("tessera.bentoml.adapter")
    hosted: HostedService = adapter.adapt(found)
    return hosted


def _import_module(module: str) -> ModuleType:
    is_file = module.endswith(".py")
    sys.path.insert(0, os.path.dirname(module) if is_file else os.getcwd())
    try:
        return _import_file(module) if is_file else importlib.import_module(module)
    except SyntaxError as error:
        place = f"{error.filename}:{error.lineno}:{error.offset or 0}"
        raise ServiceError(f"{place}: {error.msg}") from error
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing == module:
            raise ServiceError(f"there is no module {module} in {os.getcwd()}") from error
        raise ServiceError(f"{_place_of(error, module)}: {_install(missing)}") from error
    except ServiceError as error:
        raise ServiceError(f"{_place_of(error, module)}: {error}") from error
    except Exception as error:
        traceback.print_exception(error)
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise ServiceError(f"{_place_of(error, module)}: {said}") from error


def _import_file(path: str) -> ModuleType:
    name = os.path.basename(path).removesuffix(".py")
    if name in sys.modules:
        # A file called like a module that is loaded already must not stand in for it.
        name = f"service_{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ServiceError("it cannot be imported")
    module = importlib.util.module_from_spec(spec)
    # Before it is executed, as an import does it: what it defines is looked up there.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _find(module: ModuleType, name: str | None, target: str) -> Any:
    if name is not None:
        named = getattr(module, name, None)
        if named is None:
            raise ServiceError(f"{target} has no {name}; {_services_said(module)}")
        if not _is_service(named):
            raise ServiceError(f"{name} in {target} is no service; {_services_said(module)}")
        return named
    found = _services_of(module)
    if not found:
        raise ServiceError(
            f"{target} has no service; put @service on a class, whose methods have @api or @task"
        )
    if len(found) > 1:
        raise ServiceError(
            f"{target} has {len(found)} services; choose one: "
            + " or ".join(f"{target}:{each}" for each in found)
        )
    return next(iter(found.values()))


def _services_of(module: ModuleType) -> dict[str, Any]:
    """The services of a module by name; those that others depend on are a part of these."""
    found = {name: value for name, value in vars(module).items() if _is_service(value)}
    # The same one may have several names.
    unique = {id(value): name for name, value in reversed(found.items())}
    parts = {
        id(dependency.on)
        for value in found.values()
        for dependency in getattr(value, "dependencies", {}).values()
    }
    return {name: found[name] for key, name in reversed(unique.items()) if key not in parts}


def _services_said(module: ModuleType) -> str:
    names = ", ".join(_services_of(module))
    return f"its services are: {names}" if names else "it has no service"


def _is_service(value: Any) -> bool:
    if definition_of(value) is not None:
        return True
    # The second is BentoML's of before 1.2, which the adapter refuses with what to do.
    modules = ("_bentoml_sdk", "bentoml._internal.service")
    return any(
        kind.__name__ == "Service" and kind.__module__.startswith(modules)
        for kind in type(value).__mro__
    )


def _install(missing: str) -> str:
    top = missing.partition(".")[0]
    distribution = _DISTRIBUTIONS.get(missing) or _DISTRIBUTIONS.get(top) or top
    return (
        f"the package {top} is not installed for {sys.executable}: "
        f"run {sys.executable} -m pip install {distribution}"
    )


def _place_of(error: BaseException, module: str) -> str:
    """The innermost place in the author's own code."""
    folder = os.path.dirname(module) if module.endswith(".py") else os.getcwd()
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(folder + os.sep) and "site-packages" not in frame.filename:
            return f"{frame.filename}:{frame.lineno}"
    return module
