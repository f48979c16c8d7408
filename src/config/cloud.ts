/** What the commands that speak to a platform take from the environment. */
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";

export interface CloudEnvironment {
  /** `SERVICE_CLOUD_API_KEY`: a token, instead of the one that was logged in with. */
  readonly apiKey: string | undefined;
  /** `SERVICE_CLOUD_API_ENDPOINT`: the platform that it is for. */
  readonly apiEndpoint: string | undefined;
  /** `TESSERA_TOKEN`: what deployments are called with, instead of the login's. */
  readonly token: string | undefined;
  /**
   * Where the login is kept: `$XDG_CONFIG_HOME/tessera` or `~/.config/tessera`
   * (XDG Base Directory Specification), on Windows `%APPDATA%\tessera`.
   */
  readonly configFolder: string;
  /** Whether a browser opened here is in front of whoever typed the command. */
  readonly canOpenBrowser: boolean;
}

export function cloudEnvironment(
  env: NodeJS.ProcessEnv,
  platform: NodeJS.Platform,
): CloudEnvironment {
  return Object.freeze({
    apiKey: env.SERVICE_CLOUD_API_KEY || undefined,
    apiEndpoint: env.SERVICE_CLOUD_API_ENDPOINT || undefined,
    token: env.TESSERA_TOKEN || undefined,
    configFolder: join(configHome(env, platform), "tessera"),
    canOpenBrowser: canOpenBrowser(env, platform),
  });
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
  // At the other end of SSH, the browser would open where nobody sits.
  if (env.SSH_CONNECTION || env.SSH_TTY) {
    return false;
  }
  return (
    platform === "darwin" || platform === "win32" || Boolean(env.DISPLAY || env.WAYLAND_DISPLAY)
  );
}
