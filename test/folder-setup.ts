/** One folder for what the tests of a run leave behind: vitest ends its processes before they could remove it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  export interface ProvidedContext {
    /** The folder of this run. */
    folder: string;
  }
}

export default function setup(project: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), "tessera-tests-"));
  project.provide("folder", folder);
  return () => rmSync(folder, { recursive: true, force: true });
}
