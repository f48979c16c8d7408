/** The form of a new token; after it, the token's value and what to do with it. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { CreateTokenResponseJson } from "../../../../../gen/tessera/v1/token_pb.js";
import { organizations, tokens } from "../../api/clients.ts";
import { messageOf } from "../../api/errors.ts";
import { me, useOrganization, usePerson } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";
import { formMessage, violationOf } from "../../ui/form.ts";
import { Done, FormActions } from "../../ui/form-actions.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Time } from "../../ui/time.tsx";
import { FIELDS, Fields, type TokenForm } from "./fields.tsx";
import { TokenValue } from "./value.tsx";

const NEW: TokenForm = {
  name: "",
  description: "",
  access: ["TOKEN_ACCESS_DEVELOPER_OPERATIONS"],
  allDeployments: false,
  deployments: [],
};

const forWorkers = (deployment: string): TokenForm => ({
  ...NEW,
  access: ["TOKEN_ACCESS_WORKER"],
  deployments: [deployment],
});

interface CreateTokenProps {
  /** The deployment to join workers to, if the token is for that. */
  readonly worker?: string | undefined;
  onClose(): void;
}

export default function CreateToken({ worker, onClose }: CreateTokenProps) {
  const [created, setCreated] = useState<CreateTokenResponseJson>();
  return created === undefined ? (
    <Dialog title="Create API token" onClose={onClose}>
      <CreateForm worker={worker} onCreated={setCreated} onClose={onClose} />
    </Dialog>
  ) : (
    <Dialog title={`Token ${created.token?.name ?? ""} created`} onClose={onClose}>
      <TokenValue
        token={created.token ?? {}}
        value={created.value ?? ""}
        loginCommand={created.loginCommand}
      />
      <Done onClose={onClose} />
    </Dialog>
  );
}

interface CreateFormProps extends CreateTokenProps {
  onCreated(created: CreateTokenResponseJson): void;
}

function CreateForm({ worker, onCreated, onClose }: CreateFormProps) {
  const organization = useOrganization();
  const { isAdmin } = usePerson();
  const queryClient = useQueryClient();
  const [isOrganizations, setOrganizations] = useState(false);
  const [fields, setFields] = useState(worker === undefined ? NEW : forWorkers(worker));
  const [expiresAt, setExpiresAt] = useState(() => inDays(DEFAULT_DAYS));
  const creating = useMutation({
    mutationFn: () =>
      tokens.createToken({
        organization,
        kind: isOrganizations ? "TOKEN_KIND_ORGANIZATION" : "TOKEN_KIND_PERSONAL",
        ...fields,
        access: [...fields.access],
        deployments: [...fields.deployments],
        expiresAt,
      }),
    onSuccess: async (created) => {
      await queryClient.invalidateQueries({ queryKey: ["tokens", organization] });
      onCreated(created);
    },
  });
  const message = formMessage(creating.error, ...FIELDS, "expires_at");
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        creating.mutate();
      }}
    >
      <fieldset className="choices kind">
        <legend>Kind</legend>
        <label className="choice">
          <input
            type="radio"
            name="kind"
            checked={!isOrganizations}
            onChange={() => {
              setOrganizations(false);
              setFields({
                ...fields,
                access: fields.access.filter((access) => access !== "TOKEN_ACCESS_MONITORING"),
              });
            }}
          />
          <span>
            Personal
            <span className="hint">Acts as you. Only you can see and change it.</span>
          </span>
        </label>
        <label className="choice">
          <input
            type="radio"
            name="kind"
            disabled={!isAdmin}
            checked={isOrganizations}
            onChange={() => setOrganizations(true)}
          />
          <span>
            Organization
            <span className="hint">
              {isAdmin
                ? `Belongs to ${organization}, and stays when you leave.`
                : "Only admins create these."}
            </span>
          </span>
        </label>
      </fieldset>
      <Fields
        value={fields}
        isOrganizations={isOrganizations}
        error={creating.error}
        onChange={(changed) => {
          // What was wrong was so of the form as it was sent.
          creating.reset();
          setFields(changed);
        }}
      />
      {fields.access.includes("TOKEN_ACCESS_MONITORING") && <AskForMonitoring />}
      <Expiry
        value={expiresAt}
        error={violationOf(creating.error, "expires_at")}
        onChange={setExpiresAt}
      />
      {message && <Notice kind="error">{message}</Notice>}
      <FormActions action="Submit" isBusy={creating.isPending} onClose={onClose} />
    </form>
  );
}

const DAYS = [7, 30, 90, 365] as const;
/** Days for which a new token is valid unless its form says otherwise. */
const DEFAULT_DAYS = 90;
const DAY_MS = 86_400_000;

const inDays = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString();

interface ExpiryProps {
  /** RFC 3339. */
  readonly value: string;
  readonly error: string | undefined;
  onChange(value: string): void;
}

/** When a token ends: after a number of days, or at the end of a day of one's own. */
function Expiry({ value, error, onChange }: ExpiryProps) {
  const [choice, setChoice] = useState(String(DEFAULT_DAYS));
  return (
    <div className="field-row">
      <Field label="Expires" error={choice === "date" ? undefined : error}>
        {(control) => (
          <select
            {...control}
            value={choice}
            onChange={(event) => {
              setChoice(event.target.value);
              if (event.target.value !== "date") {
                onChange(inDays(Number(event.target.value)));
              }
            }}
          >
            {DAYS.map((days) => (
              <option key={days} value={days}>
                in {days} days
              </option>
            ))}
            <option value="date">at the end of a day</option>
          </select>
        )}
      </Field>
      {choice === "date" && (
        <Field label="Day" error={error}>
          {(control) => (
            <input
              {...control}
              type="date"
              required
              min={dayOf(Date.now())}
              defaultValue={dayOf(Date.parse(value))}
              onChange={(event) => {
                const end = new Date(`${event.target.value}T23:59:59`);
                if (!Number.isNaN(end.getTime())) {
                  onChange(end.toISOString());
                }
              }}
            />
          )}
        </Field>
      )}
    </div>
  );
}

/** The day of this browser, `YYYY-MM-DD`. */
function dayOf(ms: number): string {
  const date = new Date(ms);
  const two = (number: number) => String(number).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** Where monitoring tokens are not enabled: asks the operator for them, or says who has asked. */
function AskForMonitoring() {
  const name = useOrganization();
  const { organization } = usePerson();
  const queryClient = useQueryClient();
  const asking = useMutation({
    mutationFn: () => organizations.askForMonitoring({ organization: name }),
    onSuccess: () => queryClient.invalidateQueries(me),
  });
  if (organization?.monitoringEnabled) {
    return null;
  }
  const { monitoringAskedAt: askedAt, monitoringAskedBy: askedBy } = organization ?? {};
  if (askedAt !== undefined) {
    return (
      <Notice kind="warning">
        <bdi>{askedBy}</bdi> asked the operator of the platform for monitoring tokens{" "}
        <Time at={askedAt} />. You can create one once they are enabled.
      </Notice>
    );
  }
  return (
    <Notice kind="warning">
      <p>
        Monitoring tokens are not enabled for {name}. The operator of the platform enables them.
      </p>
      <Button isBusy={asking.isPending} onClick={() => asking.mutate()}>
        Ask the operator
      </Button>
      {asking.error && <p className="field-error">{messageOf(asking.error)}</p>}
    </Notice>
  );
}
