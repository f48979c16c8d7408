import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { get } from "./calling.ts";
import { Program } from "./program.ts";

const SERVICE = fileURLToPath(new URL("../../fixtures/services/zod-functions.ts", import.meta.url));

it("calls are logged at debug, and not where only more is asked for", {
  timeout: 60_000,
}, async () => {
  for (const level of ["debug", "info"]) {
    const { program, url } = await Program.serve([SERVICE], { env: { TESSERA_LOG_LEVEL: level } });
    await using _ = program;
    await get(`${url}/livez?token=hunter2`);
    if (level === "debug") {
      await program.says("stderr", /"msg":"GET \/livez 200 [\d.]+ ms [\da-f]{32}/);
    }
    const { stderr } = await program.stop();
    expect(stderr.includes("/livez"), level).toBe(level === "debug");
    expect(stderr).not.toContain("hunter2");
  }
});
