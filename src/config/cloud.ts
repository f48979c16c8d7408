/** The environment variables of the commands that speak to a platform. */
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";

export interface CloudEnvironment {
  /** `SERVICE_CLOUD_API_KEY`: a token that replaces the one of the login. */
  readonly apiKey: string | undefined;
  /** `SERVICE_CLOUD_API_ENDPOINT`: the platform that the token is for. */
  readonly apiEndpoint: string | undefined;
  /** `TESSERA_TOKEN`: the token for calls of deployments; it replaces that of the login. */
  readonly token: string | undefined;
  /**
   * Where the login is kept: `$XDG_CONFIG_HOME/tessera` or `~/.config/tessera`
   * (XDG Base Directory Specification), on Windows `%APPDATA%\tessera`.
   */
  readonly configFolder: string;
  /**
   * Kept for the next command, and free to be lost: `$XDG_CACHE_HOME/tessera` or
   * `~/.cache/tessera`.
   */
  readonly cacheFolder: string;
  /** Whether the person who typed the command would see a browser opened here. */
  readonly canOpenBrowser: boolean;
}

/** Whether the program was started by npx or an npm script, and so may be on nobody's path. */
export function isRunByNpm(env: NodeJS.ProcessEnv): boolean {
  return env.npm_command !== undefined;
}

/** Reads the environment of the commands that speak to a platform. */
export function readCloudEnvironment(
  env: NodeJS.ProcessEnv,
  platform: NodeJS.Platform = process.platform,
): CloudEnvironment {
  return Object.freeze({
    apiKey: env.SERVICE_CLOUD_API_KEY || undefined,
    apiEndpoint: env.SERVICE_CLOUD_API_ENDPOINT || undefined,
    token: env.TESSERA_TOKEN || undefined,
    configFolder: join(configHome(env, platform), "tessera"),
    cacheFolder: cacheFolderOf(env),
    canOpenBrowser: canOpenBrowser(env, platform),
  });
}

/** The folder for what the next command can use, and which may be lost. */
export function cacheFolderOf(env: NodeJS.ProcessEnv): string {
  const named = env.XDG_CACHE_HOME ?? "";
  // The specification says to ignore relative paths.
  return join(isAbsolute(named) ? named : join(env.HOME || homedir(), ".cache"), "tessera");
}

function configHome(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): string {
  if (platform === "win32") {
    return env.APPDATA || join(homedir(), "AppData", "Roaming");
  }
  const named = env.XDG_CONFIG_HOME ?? "";
  // The specification says to ignore relative paths.
  return isAbsolute(named) ? named : join(env.HOME || homedir(), ".config");
}

function canOpenBrowser(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): boolean {
  // Over SSH, the browser would open on a machine that nobody sits at.
  if (env.SSH_CONNECTION || env.SSH_TTY) {
    return false;
  }
  return (
    platform === "darwin" || platform === "win32" || Boolean(env.DISPLAY || env.WAYLAND_DISPLAY)
  );
}
