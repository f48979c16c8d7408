/** Opens a page in the person's browser. */
import { spawn } from "node:child_process";

/** The system's program for it; the URL is its last argument, and no shell reads it. */
function opener(platform: NodeJS.Platform): readonly [string, ...string[]] {
  switch (platform) {
    case "darwin":
      return ["open"];
    case "win32":
      // `start` is a word of the shell, which would read the URL's `&` as its own.
      return ["rundll32", "url.dll,FileProtocolHandler"];
    default:
      return ["xdg-open"];
  }
}

/** Resolves with whether the program could be started; what becomes of it is not waited for. */
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
