/** Opens a page in the user's browser. */
import { spawn } from "node:child_process";

/**
 * The system's program that opens URLs. The URL is its last argument and passes
 * through no shell.
 */
function opener(platform: NodeJS.Platform): readonly [string, ...string[]] {
  switch (platform) {
    case "darwin":
      return ["open"];
    case "win32":
      // `start` is a shell command, and the shell would interpret the URL's `&`.
      return ["rundll32", "url.dll,FileProtocolHandler"];
    default:
      return ["xdg-open"];
  }
}

/** Resolves with whether the program could be started, without waiting for it. */
export function openBrowser(url: string): Promise<boolean> {
  const [program, ...args] = opener(process.platform);
  return new Promise((resolve) => {
    const child = spawn(program, [...args, url], { stdio: "ignore", detached: true });
    child.once("spawn", () => {
      child.unref();
      resolve(true);
    });
    child.once("error", () => resolve(false));
  });
}
