/** A node as a process of its own, with a shorter limit of silence than any setting gives it. */
import { startPlatform } from "../../../../src/app/start.ts";
import { readStartConfig } from "../../../../src/config/start.ts";

const [port = "", data = "", silenceMs = ""] = process.argv.slice(2);
const { config, secrets } = readStartConfig(
  { port, data, logLevel: "warn", drainTime: "300ms" },
  { PATH: process.env.PATH },
);
const started = await startPlatform({ ...config, silenceMs: Number(silenceMs) }, secrets);
process.stdout.write(`runs on ${started.url}\n`);
