/** The part of the hosting port for launchers: who starts the machines of a deployment, and how that goes. */
import type { DeploymentKey } from "./deployment-key.ts";

/** What a launcher says of the machines of a deployment. */
export interface LaunchReport {
  /** What it starts machines on, such as `slurm`. */
  readonly on: string;
  /** The machine that it runs on itself. */
  readonly hostname: string;
  /** Machines that should be there, by its own bound. */
  readonly machines: number;
  /** Those that were started and have not joined yet. */
  readonly starting: number;
  readonly joined: number;
  /** Starts that failed, and machines that never joined, since one joined last. */
  readonly failed: number;
  /** Why, for people; empty where nothing is wrong. */
  readonly reason: string;
}

export interface LaunchRecord extends DeploymentKey, LaunchReport {
  /** The token that the launcher calls with. */
  readonly tokenId: string;
  /** What it says of machines that do not come, or have not yet, as a sentence; undefined: nothing. */
  readonly said: string | undefined;
}

/** A launcher is known by its id and its token. */
interface Launcher {
  readonly organizationId: string;
  readonly launcher: string;
  readonly tokenId: string;
}

export interface LauncherStorage {
  /**
   * Makes deployments those of a launcher until `ttlMs` from now, or prolongs that, with what it
   * says of each. Returns the ids of those that are its own: the others are those of another
   * launcher whose time is not over, or were deleted.
   */
  holdLaunches(
    parameters: Launcher & {
      readonly reports: readonly (LaunchReport & { readonly deploymentId: string })[];
      readonly nowMs: number;
      readonly ttlMs: number;
    },
  ): Promise<string[]>;

  /** Whether a deployment is that of a launcher now. */
  holdsLaunch(
    parameters: Launcher & { readonly deploymentId: string; readonly nowMs: number },
  ): Promise<boolean>;

  /** Gives back all that is a launcher's. */
  endLaunches(parameters: Launcher): Promise<void>;

  /**
   * What the launchers of an organization, or of one deployment of it, say, by deployment; those
   * whose time is over say nothing.
   */
  listLaunches(parameters: {
    readonly organizationId: string;
    readonly deploymentId?: string;
    readonly nowMs: number;
  }): Promise<LaunchRecord[]>;
}
