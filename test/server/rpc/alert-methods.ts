/** Who may call which method of alerts. */
import { AlertService } from "../../../gen/tessera/v1/alert_pb.js";
import type { Cast } from "./callers.ts";
import type { TestPlatform } from "./platform.ts";
import { FOREIGN, named, type Row } from "./row.ts";
import { newName } from "./world.ts";

const alert = AlertService.method;

/** A receiver of alerts and a rule, of one name. */
async function alertOf(platform: TestPlatform, cast: Cast) {
  const { organizationId } = cast.company;
  const { hosting } = platform.storage;
  const name = newName("alert");
  const key = { organizationId, deploymentId: organizationId };
  const webhookId = platform.newId();
  await hosting.createWebhook({
    ...platform.deed(),
    ...{ ...key, name, webhookId, url: "https://example.com", ends: [], limit: 1_000 },
    ...{ endpoint: "", namedOnly: false },
    sealed: platform.keys.seal("[]", `webhook/${organizationId}/${organizationId}/${webhookId}`),
  });
  const deliveryId = `test-${platform.newId()}`;
  await hosting.addTestDelivery({ ...platform.deed(), ...key, name, deliveryId, body: "{}" });
  await hosting.createAlertRule({
    ...platform.deed(),
    ...{ organizationId, name, ruleId: platform.newId(), kind: "failures", threshold: 5 },
    ...{ deployments: [], receivers: [], holdMs: 60_000, limit: 1_000 },
  });
  return { ...named(cast), name, deliveryId };
}

export const ALERT_ROWS: readonly Row[] = [
  {
    method: alert.createAlertRule,
    request: (_, cast) => ({
      ...named(cast),
      rule: { name: newName("rule"), kind: "ALERT_KIND_FAILURES" },
    }),
  },
  {
    method: alert.updateAlertRule,
    request: async (platform, cast) => {
      const { name } = await alertOf(platform, cast);
      return { ...named(cast), rule: { name, threshold: 9 } };
    },
    except: { [FOREIGN]: "ALERT_NOT_FOUND" },
  },
  {
    method: alert.createAlertReceiver,
    request: (_, cast) => ({
      ...named(cast),
      receiver: {
        ...{ name: newName("receiver"), kind: "ALERT_RECEIVER_KIND_WEBHOOK" },
        address: "https://example.com/told",
      },
    }),
  },
  {
    method: alert.updateAlertReceiver,
    request: async (platform, cast) => {
      const { name } = await alertOf(platform, cast);
      return { ...named(cast), receiver: { name, disabled: true } };
    },
    except: { [FOREIGN]: "ALERT_NOT_FOUND" },
  },
  ...[
    alert.listAlertRules,
    alert.listAlerts,
    alert.listAlertReceivers,
    alert.listAlertDeliveries,
  ].map((method) => ({ method, request: (_: TestPlatform, cast: Cast) => named(cast) })),
  ...[
    alert.deleteAlertRule,
    alert.silenceAlertRule,
    alert.deleteAlertReceiver,
    alert.rotateAlertReceiverSecret,
    alert.testAlertReceiver,
  ].map((method) => ({
    method,
    request: async (platform: TestPlatform, cast: Cast) => {
      const { name } = await alertOf(platform, cast);
      return { ...named(cast), name };
    },
    except: { [FOREIGN]: "ALERT_NOT_FOUND" } as const,
  })),
  ...[alert.getAlertDelivery, alert.redeliverAlert].map((method) => ({
    method,
    request: async (platform: TestPlatform, cast: Cast) => {
      const { deliveryId } = await alertOf(platform, cast);
      return { ...named(cast), deliveryId };
    },
    except: { [FOREIGN]: "ALERT_NOT_FOUND" } as const,
  })),
];
