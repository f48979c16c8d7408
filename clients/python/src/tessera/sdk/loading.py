"""Imports the module of a service, and finds the service in it."""

from __future__ import annotations

import enum
import importlib
import importlib.util
import inspect
import os
import re
import sys
import traceback
from types import ModuleType
from typing import Any

from .executable import HostedService, ServiceError
from .hosted import HostedClass
from .services import ServiceDefinition, definition_of

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


class Installation(enum.Enum):
    """How a service gets its packages, for the advice about one that is missing."""

    OWN = "the author installs them"
    LOCKED = "the platform installs those that the service names"


_SYSTEM_PACKAGES = {
    "libGL.so.1": "libgl1",
    "libEGL.so.1": "libegl1",
    "libX11.so.6": "libx11-6",
    "libXext.so.6": "libxext6",
    "libcairo.so.2": "libcairo2",
    "libcuda.so.1": "nvidia-driver",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgomp.so.1": "libgomp1",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libmagic.so.1": "libmagic1",
    "libpango-1.0.so.0": "libpango-1.0-0",
    "libpq.so.5": "libpq5",
    "libsndfile.so.1": "libsndfile1",
    "libxml2.so.2": "libxml2",
}
"""System packages that bring the libraries which packages for Python load most often."""


def load_service(
    module: str,
    name: str | None = None,
    *,
    folder: str | None = None,
    installation: Installation = Installation.OWN,
) -> HostedService:
    """Loads the service of a file, or of a module by its dotted name.

    ``name`` is the service's name in it; without, it must be the only one. A dotted name is
    imported from ``folder``, by default the working folder. Raises ``ServiceError`` with one
    message for the author.
    """
    own = os.path.dirname(module) if module.endswith(".py") else folder or os.getcwd()
    loaded = _import_module(module, own, installation)
    found = _find(loaded, name, module)
    definition = definition_of(found)
    if definition is not None:
        return _host(definition, loaded)
    adapter = importlib.import_module("tessera.bentoml.adapter")
    hosted: HostedService = adapter.adapt(found)
    return hosted


def _host(definition: ServiceDefinition, module: ModuleType) -> HostedClass:
    try:
        return HostedClass(definition)
    except ServiceError as error:
        if error.function is None:
            raise ServiceError(f"{module.__file__}: {error}") from error
        function = inspect.unwrap(error.function)
        code = function.__code__
        name = function.__qualname__.rpartition("<locals>.")[2]
        place = f"{code.co_filename}:{code.co_firstlineno}"
        raise ServiceError(f"{place}: in {name}: {error}") from error


def _import_module(module: str, folder: str, installation: Installation) -> ModuleType:
    is_file = module.endswith(".py")
    sys.path.insert(0, folder)
    try:
        return _import_file(module) if is_file else importlib.import_module(module)
    except SyntaxError as error:
        place = f"{error.filename}:{error.lineno}:{error.offset or 0}"
        raise ServiceError(f"{place}: {error.msg}") from error
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if f"{module}.".startswith(f"{missing}."):
            raise ServiceError(f"there is no module {module} in {folder}") from error
        advice = _install(missing, installation)
        raise ServiceError(f"{_place_of(error, module, folder)}: {advice}") from error
    except ServiceError as error:
        raise ServiceError(f"{_place_of(error, module, folder)}: {error}") from error
    except (ImportError, OSError) as error:
        library = _missing_library(str(error))
        if library is None:
            raise _raised(error, module, folder) from error
        raise ServiceError(f"{_place_of(error, module, folder)}: {library}") from error
    except Exception as error:
        raise _raised(error, module, folder) from error


def _raised(error: Exception, module: str, folder: str) -> ServiceError:
    traceback.print_exception(error)
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return ServiceError(f"{_place_of(error, module, folder)}: {said}")


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


def _install(missing: str, installation: Installation) -> str:
    top = missing.partition(".")[0]
    if top in sys.modules:
        return f"the package {top} has no module {missing}: check its name, or the version of {top}"
    distribution = _DISTRIBUTIONS.get(missing) or _DISTRIBUTIONS.get(top) or top
    if installation is Installation.LOCKED:
        return (
            f"there is no module {top} in the service's environment: add {distribution} to its "
            f"requirements.txt, or its file to what is deployed"
        )
    return (
        f"the package {top} is not installed for {sys.executable}: "
        f"run {sys.executable} -m pip install {distribution}"
    )


def _missing_library(said: str) -> str | None:
    """The advice about a shared library of the system that a package loads."""
    found = re.search(r"(\S+\.so[.\d]*): cannot open shared object file", said)
    if found is None:
        return None
    library = found[1]
    package = _SYSTEM_PACKAGES.get(library)
    named = f" (in Debian and Ubuntu the package {package})" if package else ""
    return (
        f"the system lacks the library {library}{named}, which a package loads: "
        f"who runs this machine installs it, or the service uses a package without it"
    )


def _place_of(error: BaseException, module: str, folder: str) -> str:
    """The innermost place in the author's own code."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(folder + os.sep) and "site-packages" not in frame.filename:
            return f"{frame.filename}:{frame.lineno}"
    return module
