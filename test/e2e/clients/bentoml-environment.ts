/** BentoML for the tests: all its versions beside each other, in one environment. */
import { type Environment, environment } from "./python-environment.ts";

/** The versions whose clients are tried. 1.4.13 is the last with the older words for states. */
export const CLIENTS = ["1.4.13", "1.4.29", "1.4.40"] as const;

/**
 * The versions whose service files are run: the oldest that runs, and the newest when this was
 * written; `TESSERA_BENTOML_VERSIONS=1.4.0,1.4.14,1.4.29` tries others.
 */
export const SERVED = (process.env.TESSERA_BENTOML_VERSIONS ?? "1.3.22,1.4.40").split(",");

/** What they need to serve, and what the services and tests of ours do. */
const PACKAGES = [
  "a2wsgi aiohttp aiohttp-asgi-connector aiosqlite attrs cattrs<23.2 click click-option-group",
  "cloudpickle deepmerge fastapi fs fsspec httpx httpx-ws inflection jinja2 kantoku numpy nvidia-ml-py",
  "opentelemetry-api opentelemetry-instrumentation-aiohttp-client opentelemetry-instrumentation-asgi",
  "opentelemetry-sdk packaging pandas pathspec pillow pip-requirements-parser prometheus-client",
  "psutil pydantic<3 pytest python-dateutil python-dotenv python-json-logger python-multipart",
  "pyyaml questionary rich rich-toolkit schema setuptools<81 simple-di starlette tomli-w uvicorn",
  "watchfiles websockets",
].flatMap((line) => line.split(" "));

export async function bentomlEnvironment(): Promise<Environment> {
  const versions = [...new Set([...SERVED, ...CLIENTS, "1.3.22"])];
  const alone = Object.fromEntries(versions.map((each) => [each, `bentoml==${each}`]));
  return environment({ name: "bentoml", packages: PACKAGES, alone });
}
