/**
 * Machines as Pods of Kubernetes, through `kubectl`, with the rights and the namespace of its
 * context. The Pod is the operator's own; the launcher adds its name, labels, the end of its time
 * and the variables with which a worker joins. The token is in a Secret beside it.
 *
 * A Pod that is deleted, by the launcher or by who drains its node, is told to end and may finish
 * its calls until then. It does not count any more from that moment.
 */
import { parse } from "yaml";
import {
  type ClusterMachine,
  DEPLOYMENT_LABEL,
  MACHINE_LABEL,
  type MachineOrder,
  type Machines,
  nameOf,
  secondsLeft,
} from "./machines.ts";
import type { Run } from "./run.ts";

/** The part of a Pod that the launcher knows. */
interface Pod {
  readonly metadata?: { readonly labels?: object; readonly annotations?: object };
  readonly spec: { readonly containers: readonly Container[] };
}

interface Container {
  readonly envFrom?: readonly object[];
}

interface PodsOptions {
  /** More arguments for `kubectl`, such as `--namespace=ml`. */
  readonly options: readonly string[];
  readonly pod: Pod;
  readonly run: Run;
  readonly now: () => number;
}

/** Reads the Pod of a machine. Throws an error that names the file. */
export function readPod(text: string, path: string): Pod {
  const read = parse(text) as {
    readonly kind?: unknown;
    readonly spec?: Partial<Pod["spec"]>;
  } | null;
  const containers = read?.spec?.containers;
  if (read?.kind !== "Pod" || !Array.isArray(containers) || containers.length === 0) {
    throw new Error(
      `${path} is not a Pod: it needs \`kind: Pod\` and a container in \`spec\`, which runs tessera worker`,
    );
  }
  return read as Pod;
}

/** The launcher's machines on Kubernetes. */
export class Pods implements Machines {
  readonly #options: PodsOptions;

  constructor(options: PodsOptions) {
    this.#options = options;
  }

  async start(order: MachineOrder): Promise<void> {
    const name = nameOf(order);
    try {
      await this.#kubectl(["create", "-f", "-"], JSON.stringify(this.#objects(order)));
    } catch (err) {
      // Of the two, the Secret may be there.
      await this.#delete([`secret/${name}`]).catch(() => undefined);
      throw err;
    }
  }

  async stop(
    machine: Pick<ClusterMachine, "id" | "deploymentId">,
    { force } = { force: false },
  ): Promise<void> {
    const name = nameOf(machine);
    const how = force ? ["--grace-period=0", "--force"] : [];
    await this.#delete([`pod/${name}`, `secret/${name}`, ...how]);
  }

  async list(): Promise<readonly ClusterMachine[]> {
    const said = await this.#kubectl([
      "get",
      "pods",
      `--selector=${MACHINE_LABEL}`,
      "--output=json",
    ]);
    const { items } = JSON.parse(said) as { readonly items: readonly SeenPod[] };
    return items.map((pod) => this.#machineOf(pod));
  }

  #objects({ id, deploymentId, env, endsAtMs }: MachineOrder): object {
    const { pod, now } = this.#options;
    const name = nameOf({ id });
    const labels = { [MACHINE_LABEL]: id, [DEPLOYMENT_LABEL]: deploymentId };
    const lifetimeSeconds = secondsLeft({ endsAtMs }, now());
    const [first, ...others] = pod.spec.containers;
    const envFrom = [...(first?.envFrom ?? []), { secretRef: { name } }];
    return {
      apiVersion: "v1",
      kind: "List",
      items: [
        { apiVersion: "v1", kind: "Secret", metadata: { name, labels }, stringData: env },
        {
          ...pod,
          apiVersion: "v1",
          kind: "Pod",
          metadata: { ...pod.metadata, name, labels: { ...pod.metadata?.labels, ...labels } },
          spec: {
            // Calls that are under way when it is deleted may end.
            terminationGracePeriodSeconds: lifetimeSeconds,
            ...pod.spec,
            restartPolicy: "Never",
            activeDeadlineSeconds: lifetimeSeconds,
            containers: [{ ...first, envFrom }, ...others],
          },
        },
      ],
    };
  }

  #machineOf({ metadata, status = {} }: SeenPod): ClusterMachine {
    const { labels, creationTimestamp, deletionTimestamp } = metadata;
    const isOver =
      deletionTimestamp !== undefined || status.phase === "Succeeded" || status.phase === "Failed";
    const scheduled = status.conditions?.find(({ type }) => type === "PodScheduled");
    return {
      id: labels[MACHINE_LABEL] ?? "",
      deploymentId: labels[DEPLOYMENT_LABEL] ?? "",
      startedAtMs: Date.parse(creationTimestamp) || this.#options.now(),
      isWaiting: !isOver && scheduled?.status !== "True",
      isOver,
      reason: reasonOf(status),
    };
  }

  async #delete(what: readonly string[]): Promise<void> {
    await this.#kubectl(["delete", "--ignore-not-found", "--wait=false", ...what]);
  }

  #kubectl(args: readonly string[], input = ""): Promise<string> {
    return this.#options.run(["kubectl", ...this.#options.options, ...args], input);
  }
}

interface Reason {
  readonly reason?: string;
  readonly message?: string;
  readonly exitCode?: number;
}

interface PodStatus extends Reason {
  readonly phase?: string;
  readonly conditions?: readonly (Reason & { readonly type: string; readonly status: string })[];
  readonly containerStatuses?: readonly {
    readonly state?: { readonly waiting?: Reason; readonly terminated?: Reason };
  }[];
}

interface SeenPod {
  readonly metadata: {
    readonly labels: { readonly [name: string]: string };
    readonly creationTimestamp: string;
    readonly deletionTimestamp?: string;
  };
  readonly status?: PodStatus;
}

/** Why a Pod waits, or how it ended: what says most. */
function reasonOf(status: PodStatus): string {
  const states = (status.containerStatuses ?? []).flatMap(({ state }) => [
    state?.waiting,
    state?.terminated,
  ]);
  const unscheduled = status.conditions?.find(
    ({ type, status: value }) => type === "PodScheduled" && value !== "True",
  );
  const found = [...states, unscheduled, status].find((one) => one?.reason || one?.message);
  const { reason, message, exitCode } = found ?? {};
  const code = exitCode === undefined ? undefined : `exit code ${exitCode}`;
  return [reason, message, code].filter((text) => text !== undefined && text !== "").join(": ");
}
