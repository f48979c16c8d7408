/** The start message of `tessera start`. */
import { join, resolve } from "node:path";
import type { StartedPlatform } from "../../app/start.ts";
import { shellWord } from "../curl.ts";

/** The start message of a platform: where everything is, and how to set it up. */
export function platformGreeting(platform: StartedPlatform, program: string): string {
  const { config, database, keys, setupCode, url, version } = platform;
  const methods = [
    "password",
    ...(config.oidc ? [`${config.oidc.name} (${config.oidc.issuer})`] : []),
  ];
  const lines = [
    `Tessera ${version} runs on ${url}`,
    "",
    `  console    ${url}/`,
    `  docs       ${url}/docs/`,
    `  reference  ${url}/reference (of the API)`,
    `  data       ${config.dataFolder}`,
    `  database   ${database}`,
    `  keys       ${keys}`,
    `  listens    ${platform.listensOn}`,
    ...sandboxLines(platform.sandbox),
    ...gpuLines(platform.gpus),
    pythonLine(platform.python),
    ...proxies(config.trustedProxies, platform.proxySecret),
    `  sign-in    ${methods.join(", ")}`,
    `  log        ${config.logLevel}, ${config.logsCalls ? "with calls" : "without calls (--access-log on)"}`,
    "",
    ...(setupCode === undefined
      ? logIn(url, program)
      : setup(platform, { code: setupCode, program })),
    "Ctrl-C stops.",
    "",
  ];
  return `${lines.join("\n")}\n`;
}

/** What holds the workers, and what to do where it could be stronger. */
export function sandboxLines(sandbox: StartedPlatform["sandbox"]): string[] {
  const memory = `  memory     ${sandbox.memoryHeldBy}`;
  if (sandbox.level === "kernel") {
    return ["  sandbox    kernel: bubblewrap and seccomp hold the workers of deployments", memory];
  }
  const { shortfall } = sandbox;
  return [
    "  sandbox    permission: Node's permission model alone, so deploy only code that you trust",
    ...(shortfall === undefined ? [] : [`             for the kernel's: ${shortfall}`]),
    memory,
  ];
}

/** The GPUs that workers may have; empty without any. */
export function gpuLines(gpus: StartedPlatform["gpus"]): string[] {
  const names = gpus.map(
    ({ name, memoryBytes }) => `${name} (${Math.round(memoryBytes / 1024 ** 3)} GiB)`,
  );
  return gpus.length === 0 ? [] : [`  gpus       ${names.join(", ")}`];
}

/** Which services in Python run here. */
function pythonLine(python: StartedPlatform["python"]): string {
  if (python === undefined) {
    return "  python     services in Python are refused: nothing holds them (--python-sandbox none trusts them)";
  }
  const named = python.named.map(({ version, path }) => `${version} (${path})`);
  return `  python     ${named.join(", ") || "the interpreters on the PATH (--python names others)"}`;
}

/** The line about proxies; empty without proxies. */
function proxies(networks: readonly string[], hasSecret: boolean): string[] {
  const how = hasSecret ? "with TESSERA_PROXY_SECRET" : "not on this machine";
  return networks.length === 0 ? [] : [`  proxies    ${networks.join(", ")}, ${how}`];
}

function logIn(url: string, program: string): string[] {
  return ["Log in on the command line:", "", `  ${program} cloud login --endpoint ${url}`, ""];
}

/** The code stands behind `#`, so that browsers send it to no server. Each start without setup replaces it. */
function setup(
  platform: StartedPlatform,
  { code, program }: { readonly code: string; readonly program: string },
): string[] {
  return [
    "Nobody has set this platform up yet. Do it in a browser, with a link that works once:",
    "",
    `  ${platform.url}/setup#code=${code}`,
    "",
    "or on this machine:",
    "",
    `  ${program} admin setup --organization acme --email you@example.com${where(platform)}`,
    "",
  ];
}

/** The options with which a command finds the same data from the same folder. */
function where({ config: { dataFolder }, database }: StartedPlatform): string {
  const data = dataFolder === resolve(".tessera") ? "" : ` --data ${shellWord(dataFolder)}`;
  if (database.includes("://")) {
    return `${data}  (with the same DATABASE_URL)`;
  }
  const isUsual = database === join(dataFolder, "tessera.db");
  return isUsual ? data : `${data} --database ${shellWord(database)}`;
}
