/**
 * A cache of the endpoints that are paused, so that submits and claims ask nothing. It is forgotten
 * when one is paused or resumed, and with the other caches of the database. Those of a deployment
 * that was deleted stay, and nobody asks for them.
 */
import type { Statements } from "./rows.ts";

export class PausedEndpoints {
  readonly #db: Statements;
  /** By deployment. */
  #paused: Map<string, Set<string>> | undefined;

  constructor(db: Statements) {
    this.#db = db;
  }

  has(deploymentId: string, endpoint: string): boolean {
    this.#paused ??= this.#read();
    return this.#paused.get(deploymentId)?.has(endpoint) === true;
  }

  forget(): void {
    this.#paused = undefined;
  }

  #read(): Map<string, Set<string>> {
    const paused = new Map<string, Set<string>>();
    for (const row of this.#db.all("SELECT deployment_id, endpoint FROM paused_endpoints")) {
      const deploymentId = String(row.deployment_id);
      const endpoints = paused.get(deploymentId) ?? new Set();
      paused.set(deploymentId, endpoints.add(String(row.endpoint)));
    }
    return paused;
  }
}
