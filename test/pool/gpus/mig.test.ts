import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readSlices } from "../../../src/pool/gpus/mig.ts";
import { readGpus } from "../../../src/pool/gpus/nvidia-smi.ts";
import { CUT, LIST, XML, xmlWith } from "./mig-answers.ts";

const MIB = 1024 ** 2;

let driverFolder: string;
beforeEach(() => {
  driverFolder = realpathSync(mkdtempSync(join(tmpdir(), "tessera-mig-")));
  mkdirSync(join(driverFolder, "nvidia-caps"));
  const minors = `config 1
monitor 2
gpu0/gi2/access 21
gpu0/gi2/ci0/access 22
gpu0/gi2/ci1/access 23
gpu0/gi9/access 84
gpu0/gi9/ci0/access 85
gpu1/gi9/access 219
`;
  writeFileSync(join(driverFolder, "nvidia-caps", "mig-minors"), minors);
});
afterEach(() => rmSync(driverFolder, { recursive: true, force: true }));

const read = ({ names = LIST, facts = XML }) =>
  readSlices({ names, facts, driverFolder }, readGpus(CUT, driverFolder));

describe("the slices of a GPU", () => {
  it("have names, memory of their own, and the files that open them", () => {
    const name = "NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb";
    const one = { index: 0, minor: 0, usedBytes: 37 * MIB };
    expect(read({})).toEqual([
      // Two compute instances have the memory of their GPU instance together.
      {
        ...{ ...one, uuid: "MIG-a", name, memoryBytes: 20_224 * MIB },
        slice: { index: 0, gpu: "GPU-one", capabilities: [21, 22] },
      },
      {
        ...{ ...one, uuid: "MIG-b", name, memoryBytes: 20_224 * MIB },
        slice: { index: 1, gpu: "GPU-one", capabilities: [21, 23] },
      },
      {
        ...{ ...one, uuid: "MIG-c", name: "NVIDIA H100 80GB HBM3 MIG 1g.10gb" },
        memoryBytes: 9_984 * MIB,
        slice: { index: 2, gpu: "GPU-one", capabilities: [84, 85] },
      },
    ]);
  });

  it("are none where the GPU has none, and where it is not cut", () => {
    const none = XML.replace(/<mig_device>.*<\/mig_device>/s, "None");
    expect(read({ facts: none })).toEqual([]);
  });

  it("are refused where an answer is cut off, or lacks the name of one", () => {
    expect(() => read({ names: LIST.slice(0, 130) })).toThrow("it names no slice 2 of GPU 0");
    expect(() => read({ facts: XML.slice(0, XML.indexOf("<total>9984")) })).toThrow(
      "its XML has 1 GPUs, and its list 2",
    );
    expect(() => read({ facts: "" })).toThrow("its XML has 0 GPUs, and its list 2");
  });

  it("are not believed from the name that a program gave itself", () => {
    const device = XML.slice(XML.indexOf("<mig_device>"), XML.indexOf("</mig_devices>"));
    for (const name of [device, `</processes>${device}<uuid>GPU-two</uuid>`]) {
      expect(read({ facts: xmlWith(name) })).toEqual(read({}));
    }
    const gpu = `</processes></gpu><gpu id="00000000:2D:00.0">${device}<uuid>GPU-two</uuid>`;
    expect(() => read({ facts: xmlWith(gpu) })).toThrow("its XML has 3 GPUs");
  });
});
