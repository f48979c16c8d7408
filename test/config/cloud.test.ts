import { homedir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readCloudEnvironment } from "../../src/config/cloud.ts";

const posix = (env: NodeJS.ProcessEnv) => readCloudEnvironment(env, "linux");

describe("the folder of the login", () => {
  it.each([
    [{ XDG_CONFIG_HOME: "/x/config", HOME: "/home/ada" }, "/x/config/tessera"],
    [{ HOME: "/home/ada" }, "/home/ada/.config/tessera"],
    [{ XDG_CONFIG_HOME: "", HOME: "/home/ada" }, "/home/ada/.config/tessera"],
    [{ XDG_CONFIG_HOME: "not/from/the/root", HOME: "/home/ada" }, "/home/ada/.config/tessera"],
    [{}, join(homedir(), ".config", "tessera")],
  ])("follows the environment: %j", (env, folder) => {
    expect(posix(env).configFolder).toBe(folder);
  });

  it("is in the application data on Windows", () => {
    const { configFolder } = readCloudEnvironment({ APPDATA: "/Roaming" }, "win32");
    expect(configFolder).toBe(join("/Roaming", "tessera"));
  });
});

describe("a browser", () => {
  it.each([
    ["on a desktop", { DISPLAY: ":0" }, "linux", true],
    ["on a desktop with Wayland", { WAYLAND_DISPLAY: "wayland-0" }, "linux", true],
    ["on macOS", {}, "darwin", true],
    ["on Windows", {}, "win32", true],
    ["without a display", {}, "linux", false],
    [
      "over SSH, where a display is forwarded",
      { DISPLAY: ":10", SSH_CONNECTION: "x" },
      "linux",
      false,
    ],
    ["over SSH to macOS", { SSH_TTY: "/dev/ttys1" }, "darwin", false],
  ] as const)("can be opened or not: %s", (_, env, platform, expected) => {
    expect(readCloudEnvironment(env, platform).canOpenBrowser).toBe(expected);
  });
});

it("takes an empty variable for one that is not set", () => {
  const env = { SERVICE_CLOUD_API_KEY: "", SERVICE_CLOUD_API_ENDPOINT: "https://x" };
  expect(posix(env)).toMatchObject({ apiKey: undefined, apiEndpoint: "https://x" });
});
