/** Who may call which method of usage and its budgets. */
import { UsageService } from "../../../gen/tessera/v1/usage_pb.js";
import type { Cast } from "./callers.ts";
import type { TestPlatform } from "./platform.ts";
import { FOREIGN, named, type Row } from "./row.ts";
import { newName } from "./world.ts";

const usage = UsageService.method;

async function budgetOf(platform: TestPlatform, cast: Cast) {
  const { organizationId } = cast.company;
  const name = newName("budget");
  await platform.storage.hosting.createBudget({
    ...platform.deed(),
    ...{ organizationId, name, budgetId: platform.newId(), measure: "calls", amount: 1 },
    ...{ period: "day", deployment: "", tokenId: "", limit: 1_000 },
  });
  return { ...named(cast), name };
}

export const USAGE_ROWS: readonly Row[] = [
  {
    method: usage.getUsage,
    request: (_, cast) => named(cast),
  },
  { method: usage.listBudgets, request: (_, cast) => named(cast) },
  {
    method: usage.createBudget,
    request: (_, cast) => ({
      ...named(cast),
      budget: { name: newName("budget"), measure: "calls", amount: 1 },
    }),
  },
  ...[usage.getBudget, usage.deleteBudget].map((method) => ({
    method,
    request: budgetOf,
    except: { [FOREIGN]: "BUDGET_NOT_FOUND" } as const,
  })),
  {
    method: usage.updateBudget,
    request: async (platform, cast) => {
      const { name, organization } = await budgetOf(platform, cast);
      return { organization, budget: { name, amount: 2 } };
    },
    except: { [FOREIGN]: "BUDGET_NOT_FOUND" },
  },
];
