import { describe, expect, it } from "vitest";
import type { DeploymentSettingsJson } from "../../gen/tessera/v1/deployment_pb.js";
import {
  changedFields,
  defaultOf,
  pairsOf,
  readDuration,
  readMib,
  readPairs,
  SETTING_FIELDS,
  type SettingTexts,
  shortDuration,
  TextFault,
  textOfPairs,
  textsOf,
} from "../../src/console/app/pages/deployments/setting-fields.ts";
import {
  DEFAULT_SETTINGS,
  SETTING_FIELDS as STORED,
} from "../../src/storage/deployment-settings.ts";

const SETTINGS: DeploymentSettingsJson = {
  minWorkers: 1,
  maxWorkers: 4,
  memoryMib: 512,
  cpu: 0.5,
  queueTime: "0.500s",
  retention: "604800s",
  env: { MODEL: "small", QUERY: "a=b" },
  network: { access: "NETWORK_ACCESS_ALLOW", hosts: ["api.example.com:443"] },
  requires: { gpu: "*" },
};

const fieldOf = (name: string) => {
  const found = SETTING_FIELDS.find((field) => field.name === name);
  if (found === undefined) {
    throw new Error(`no field ${name}`);
  }
  return found;
};

describe("the settings of a deployment in a form", () => {
  it("are all that a deployment has", () => {
    expect(SETTING_FIELDS.map(({ path }) => path).sort()).toEqual(Object.values(STORED).sort());
  });

  it("say the same again when nothing was changed", () => {
    const texts = textsOf(SETTINGS);
    expect(texts).toMatchObject({
      memoryMib: "512 MiB",
      queueTime: "0.5 s",
      retention: "7 d",
      env: '[["MODEL","small"],["QUERY","a=b"]]',
      network: "api.example.com:443",
      requires: '[["gpu","*"]]',
      processes: "",
    });
    expect(changedFields(SETTINGS, texts)).toEqual([]);
    for (const { name, write } of SETTING_FIELDS.filter((field) => field.name in SETTINGS)) {
      const written = write(texts[name] ?? "");
      expect(textsOf({ ...SETTINGS, ...written })[name]).toBe(texts[name]);
    }
  });

  it("tell which were changed, and which of those replace workers", () => {
    const texts: SettingTexts = { ...textsOf(SETTINGS), memoryMib: "1024", maxWorkers: "8" };
    const changed = changedFields(SETTINGS, texts);
    expect(changed.map(({ name, replacesWorkers }) => [name, replacesWorkers])).toEqual([
      ["maxWorkers", false],
      ["memoryMib", true],
    ]);
    expect(Object.assign({}, ...changed.map((one) => one.write(texts[one.name] ?? "")))).toEqual({
      maxWorkers: 8,
      memoryMib: 1_024,
    });
  });

  it.each([
    ["0", "0s", "0"],
    ["500ms", "0.5s", "0.5 s"],
    ["90s", "90s", "90 s"],
    ["10m", "600s", "10 min"],
    ["15 min", "900s", "15 min"],
    ["2h", "7200s", "2 h"],
    ["30d", "2592000s", "30 d"],
    ["5", "5s", "5 s"],
  ])("have durations such as %s", (text, written, shown) => {
    expect(readDuration(text)).toBe(written);
    expect(shortDuration(written)).toBe(shown);
  });

  it.each(["", "soon", "-5s", "5 weeks"])("refuse %j as a duration", (text) => {
    expect(() => readDuration(text)).toThrow(TextFault);
  });

  it.each([
    ["640", 640],
    ["512 MiB", 512],
    ["1.5gib", 1_536],
  ])("have sizes such as %s", (text, mib) => {
    expect(readMib(text)).toBe(mib);
  });

  it.each(["", "much", "-5", "0.3 MiB", "2 TB"])("refuse %j as a size", (text) => {
    expect(() => readMib(text)).toThrow(TextFault);
  });

  it("are empty where the code says them, and write zero for it", () => {
    for (const name of ["processes", "gpus", "gpuMemoryMib", "readyTimeout", "retention"]) {
      const { read, write, mayBeEmpty } = fieldOf(name);
      expect(mayBeEmpty).toBe(true);
      expect(read({})).toBe("");
      expect(Object.values(write(""))[0]).toBe(/readyTimeout|retention/.test(name) ? "0s" : 0);
    }
    expect(() => fieldOf("memoryMib").write("")).toThrow(TextFault);
  });

  it("have the defaults of a new deployment", () => {
    const { queueTimeMs, minWorkers, maxWorkers, memoryMib, cpu } = DEFAULT_SETTINGS;
    const queueTime = `${queueTimeMs / 1_000}s`;
    const made = { minWorkers, maxWorkers, memoryMib, cpu, queueTime };
    for (const name of Object.keys(made)) {
      expect(defaultOf(fieldOf(name), {}, textsOf(SETTINGS))).toBe(fieldOf(name).read(made));
    }
  });

  it("have what the code says as their default, or what holds without it", () => {
    const texts = textsOf(SETTINGS);
    const textOf = (name: string, code: DeploymentSettingsJson | undefined, typed = texts) =>
      defaultOf(fieldOf(name), code, typed);
    const code = { gpus: 0.5, gpuMemoryMib: 4_096, readyTimeout: "900s", retention: "604800s" };
    const names = ["gpus", "gpuMemoryMib", "readyTimeout", "retention", "processes"];
    expect(names.map((name) => textOf(name, code))).toEqual([
      "0.5, from the code",
      "4096 MiB, from the code",
      "15 min, from the code",
      "7 d, from the code",
      "none",
    ]);
    expect(names.map((name) => textOf(name, {}))).toEqual([
      "none",
      "the whole GPU",
      "that of the platform",
      "as each task says",
      "none",
    ]);
    expect(textOf("readyTimeout", undefined)).toBe("from the code");
    // The code has no say where the deployment has a setting of its GPUs.
    expect(textOf("gpuMemoryMib", code, { ...texts, gpus: "1" })).toBe("the whole GPU");
    expect(textOf("gpus", code, { ...texts, gpuMemoryMib: "4 GiB" })).toBe("as its memory says");
  });

  it("take variables from lines, with equals signs and empty values, and refuse one without a name", () => {
    expect(readPairs("A=1\n\n B = two\nC=\nD=a=b")).toEqual({ A: "1", B: " two", C: "", D: "a=b" });
    expect(() => readPairs("A=1\nno name")).toThrow("this one has no name: no name");
  });

  it("have variables in rows, whose values may have lines, and leave out empty rows", () => {
    const { read, write } = fieldOf("env");
    const env = { KEY: "first line\n second=line ", EMPTY: "" };
    expect(write(read({ env }))).toEqual({ env });
    const typed = textOfPairs([
      ["", ""],
      [" A ", "1"],
      ["", ""],
      ["", ""],
    ]);
    expect(pairsOf(typed)).toHaveLength(2);
    expect(write(typed)).toEqual({ env: { A: "1" } });
    expect(() => write(textOfPairs([["", "1"]]))).toThrow("Each value needs a name.");
    expect(() =>
      write(
        textOfPairs([
          ["A", "1"],
          ["A ", "2"],
        ]),
      ),
    ).toThrow("A is there twice.");
  });

  it("have a network that is open, none, or hosts", () => {
    const { read, write } = fieldOf("network");
    expect(read({})).toBe("NETWORK_ACCESS_OPEN");
    for (const access of ["NETWORK_ACCESS_OPEN", "NETWORK_ACCESS_NONE"] as const) {
      expect(write(access)).toEqual({ network: { access } });
      expect(read({ network: { access } })).toBe(access);
    }
    expect(write("none\n *.b.example:443 ")).toEqual({
      network: { access: "NETWORK_ACCESS_ALLOW", hosts: ["none", "*.b.example:443"] },
    });
    expect(() => write(" ")).toThrow(TextFault);
  });
});
