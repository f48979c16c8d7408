/** The budgets of an organization: how much of each is used, and their changes. */
import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import type { BudgetJson } from "../../../../../gen/tessera/v1/usage_pb.js";
import { messageOf } from "../../api/errors.ts";
import { useOrganization, usePerson } from "../../api/session.ts";
import { budgetsOf, usage } from "../../api/usage.ts";
import { Button } from "../../ui/button.tsx";
import { Command } from "../../ui/command.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";
import { FieldsForm, textOf } from "../../ui/fields-form.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Notice } from "../../ui/notice.tsx";
import { count } from "../../ui/quantity.ts";
import { Share } from "../../ui/share.tsx";
import { Time } from "../../ui/time.tsx";
import { useActing } from "../../ui/use-acting.ts";
import { useSeenVersion } from "../../ui/use-seen-version.ts";
import { COUNTED } from "./usage-sums.ts";

type Asked =
  | { readonly what: "form"; readonly budget: BudgetJson | undefined }
  | { readonly what: "delete"; readonly name: string };

export function Budgets({ units }: { readonly units: readonly string[] }) {
  const organization = useOrganization();
  const { isAdmin } = usePerson();
  const { readAgain } = useActing(["budgets", organization]);
  const { data: budgets, error } = useQuery(budgetsOf(organization));
  const [asked, setAsked] = useState<Asked>();
  const close = () => setAsked(undefined);
  const done = () => {
    close();
    void readAgain();
  };
  return (
    <section aria-labelledby="budgets">
      <header className="section-header">
        <h2 id="budgets">Budgets</h2>
        {isAdmin && (
          <Button onClick={() => setAsked({ what: "form", budget: undefined })}>
            Create budget
          </Button>
        )}
      </header>
      {error && <Notice kind="error">{messageOf(error)}</Notice>}
      {budgets?.length === 0 && (
        <div className="card">
          <p>
            A budget bounds what is used in a day or a month. When it is spent, new calls are
            refused. <a href="/docs/usage.html#budgets">How budgets work</a>
          </p>
          <Command text="npx tessera-platform budget create gpus gpu_seconds 36000" />
        </div>
      )}
      {budgets !== undefined && budgets.length > 0 && (
        <DataTable
          label="Budgets, by name"
          items={budgets}
          keyOf={({ name = "" }) => name}
          columns={[
            {
              name: "Name",
              cell: (one) => (
                <>
                  {one.name}
                  <span className="secondary">{scopeOf(one)}</span>
                </>
              ),
            },
            { name: "Used", cell: (one) => <Used of={one} /> },
            {
              name: "Begins anew",
              cell: ({ periodEnd }) => periodEnd !== undefined && <Time at={periodEnd} />,
            },
          ]}
          {...(isAdmin && {
            actions: (one: BudgetJson) => (
              <Menu
                id={`budget-${one.name}`}
                label={`Actions for ${one.name}`}
                items={[
                  { label: "Edit", run: () => setAsked({ what: "form", budget: one }) },
                  {
                    label: "Delete",
                    isDangerous: true,
                    run: () => setAsked({ what: "delete", name: one.name ?? "" }),
                  },
                ]}
              />
            ),
          })}
        />
      )}
      {asked?.what === "form" && (
        <BudgetForm budget={asked.budget} units={units} onDone={done} onClose={close} />
      )}
      {asked?.what === "delete" && (
        <Confirm
          title={`Delete ${asked.name}?`}
          action="Delete"
          run={() => usage.deleteBudget({ organization, name: asked.name })}
          onDone={done}
          onClose={close}
        >
          <p>Nothing is refused because of it any more.</p>
        </Confirm>
      )}
    </section>
  );
}

function Used({ of: one }: { readonly of: BudgetJson }) {
  const [used, limit] = [Number(one.used ?? 0), Number(one.amount ?? 0)];
  const isSpent = used >= limit;
  const format = COUNTED.find(({ name }) => name === one.measure)?.format ?? count;
  return (
    <Share
      used={isSpent ? 1 : used}
      limit={isSpent ? 1 : limit}
      problem={isSpent ? "spent" : "nearly spent"}
    >
      {`${format(used)} of ${amountOf(one)}`}
    </Share>
  );
}

/** What may be used, such as `10 h (GPU time) a month`. */
function amountOf({ measure = "", amount, period }: BudgetJson): string {
  const { label, format = count } = COUNTED.find(({ name }) => name === measure) ?? {};
  const time = period === "BUDGET_PERIOD_DAY" ? "day" : "month";
  return `${format(Number(amount ?? 0))} (${label ?? measure}) a ${time}`;
}

/** Whose use it bounds. */
function scopeOf({ deployment = "", token = "", tokenName = "" }: BudgetJson): string {
  const parts = [
    ...(deployment === "" ? [] : [`deployment ${deployment}`]),
    ...(token === "" ? [] : [`token ${tokenName || token}`]),
  ];
  return parts.join(", ") || "the organization";
}

interface BudgetFormProps {
  /** Undefined: one is created. */
  readonly budget: BudgetJson | undefined;
  /** Units that functions have reported. */
  readonly units: readonly string[];
  onDone(): void;
  onClose(): void;
}

function BudgetForm({ budget, units, onDone, onClose }: BudgetFormProps) {
  const organization = useOrganization();
  const measures = useId();
  const { name = "" } = budget ?? {};
  const sendSeen = useSeenVersion<BudgetJson>({
    thing: budget,
    read: () => usage.getBudget({ organization, name }),
    wordsOf: amountOf,
  });
  const send = (values: FormData) => {
    const amount = Number(textOf(values, "budget.amount"));
    return budget !== undefined
      ? sendSeen((version) =>
          usage.updateBudget({ organization, budget: { name, amount, version } }),
        )
      : usage.createBudget({
          organization,
          budget: {
            amount,
            name: textOf(values, "budget.name"),
            measure: textOf(values, "budget.measure"),
            deployment: textOf(values, "budget.deployment"),
            token: textOf(values, "budget.token"),
            period: values.has("day") ? "BUDGET_PERIOD_DAY" : "BUDGET_PERIOD_MONTH",
          },
        });
  };
  const isNew = budget === undefined;
  const plain = { autoComplete: "off", maxLength: 64 } as const;
  return (
    <Dialog title={isNew ? "Create budget" : `Edit ${name}`} onClose={onClose}>
      <FieldsForm
        fields={
          isNew
            ? [
                { name: "budget.name", label: "Name", ...plain },
                {
                  ...{ name: "budget.measure", label: "Measure", ...plain, list: measures },
                  hint: "Such as calls, gpu_seconds, or a unit of your own.",
                },
                { name: "budget.deployment", label: "Deployment", ...plain, optional: true },
                { name: "budget.token", label: "Id of a token", ...plain, optional: true },
              ]
            : []
        }
        submit={isNew ? "Create" : "Save"}
        needsChange={!isNew}
        send={send}
        onDone={onDone}
        onClose={onClose}
      >
        {isNew && (
          <datalist id={measures}>
            {[...COUNTED.map((one) => one.name), ...units].map((one) => (
              <option key={one} value={one} />
            ))}
          </datalist>
        )}
        <Field
          label={isNew ? "Amount" : `Amount, of ${budget.measure}`}
          hint="How much may be used. Seconds and bytes are numbers, too."
        >
          {(control) => (
            <input
              {...control}
              name="budget.amount"
              type="number"
              required
              min={0}
              step="any"
              defaultValue={budget?.amount === undefined ? undefined : Number(budget.amount)}
            />
          )}
        </Field>
        {isNew && (
          <label className="choice">
            <input type="checkbox" name="day" />
            <span>In a day, instead of a month</span>
          </label>
        )}
      </FieldsForm>
    </Dialog>
  );
}
