/** The settings of `tessera start` about services in Python. */
import { optional, type Settings, setting } from "./settings.ts";
import * as values from "./values.ts";

const MEBIBYTE = 1024 ** 2;
const GIBIBYTE = 1024 ** 3;

export const PYTHON_SETTINGS = {
  pythonInterpreters: optional({
    flag: "--python <interpreters>",
    variable: "TESSERA_PYTHON",
    shownDefault: "python3 and python3.10 to python3.15 on the PATH",
    parse: values.line,
    summary:
      "comma-separated interpreters for services in Python, such as 3.11=/usr/bin/python3.11,3.12=/opt/python/bin/python3",
    reason: "nothing is downloaded behind your back; a deployment says which version it needs",
  }),
  pythonSandbox: setting({
    flag: "--python-sandbox <level>",
    variable: "TESSERA_PYTHON_SANDBOX",
    fallback: "kernel",
    parse: values.oneOf(["kernel", "none"]),
    summary:
      "what holds workers in Python: the kernel's sandbox, or none, with which their code can do all that the platform's user can",
    reason:
      "Python has no permission model: without the kernel's sandbox, deployments in Python are refused, unless you trust everyone who deploys",
  }),
  uv: optional({
    flag: "--uv <path>",
    variable: "TESSERA_UV",
    shownDefault: "fetched once from the package index, and checked",
    parse: values.line,
    summary: "program uv, which installs the packages of services in Python",
    reason:
      "a version that is known to work; name one where the node reaches no index. Which index that is, UV_DEFAULT_INDEX or PIP_INDEX_URL says",
  }),
  maxEnvironmentsPerOrganization: setting({
    flag: "--max-environments-per-organization <size>",
    variable: "TESSERA_MAX_ENVIRONMENTS_PER_ORGANIZATION",
    fallback: "20GiB",
    parse: values.size(64 * MEBIBYTE, 10_240 * GIBIBYTE),
    summary:
      "maximum disk space of the packages that services of one organization use on this node, and, besides, of their images",
    reason:
      "two of the largest machine-learning libraries in several versions; equal locks share theirs",
  }),
} as const satisfies Settings;
