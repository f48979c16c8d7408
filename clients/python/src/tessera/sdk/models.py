"""Where a worker finds the models of its service."""

from __future__ import annotations

import json
import os
from pathlib import Path


def model_path(name: str) -> Path:
    """The folder with the files of a model that the service has (``models``), read-only.

    Raises ``LookupError`` where the service has no model of this name.
    """
    models = json.loads(os.environ.get("TESSERA_MODELS", "{}"))
    if name not in models:
        raise LookupError(
            f'there is no model "{name}" here: name it in @service(models={{"{name}": "hf://…"}}), '
            "or in models of tessera.yaml; under tessera serve, "
            f"--model {name}=FOLDER says where it is"
        )
    return Path(models[name])
