/** What a program asks for, with the two answers; and the choice of the organization that it is for. */
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import type { OrganizationJson } from "../../../../../gen/tessera/v1/organization_pb.js";
import { messageOf } from "../../api/errors.ts";
import { titleOf } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Facts } from "../../ui/facts.tsx";
import { Field } from "../../ui/field.tsx";
import { isolated } from "../../ui/isolated.ts";
import { Notice } from "../../ui/notice.tsx";

interface AllowOrDenyProps {
  readonly facts: Readonly<Record<string, string>>;
  readonly organizations: readonly OrganizationJson[];
  /** Answers the program for an organization; the page goes on by itself. */
  answer(isAllowed: boolean, organization: string): Promise<unknown>;
}

export function AllowOrDeny({ facts, organizations, answer }: AllowOrDenyProps) {
  const [only, ...others] = organizations;
  const [organization, setOrganization] = useState(only?.name ?? "");
  const answering = useMutation({
    mutationFn: (isAllowed: boolean) => answer(isAllowed, organization),
  });
  if (only === undefined) {
    return <Notice kind="error">You belong to no organization yet.</Notice>;
  }
  return (
    <section className="card">
      <Facts entries={{ ...facts, ...(others.length === 0 && { Organization: titleOf(only) }) }} />
      {others.length > 0 && (
        <Field label="Organization">
          {(control) => (
            <select
              {...control}
              value={organization}
              onChange={(event) => setOrganization(event.target.value)}
            >
              {organizations.map(({ name, displayName }) => (
                <option key={name} value={name}>
                  {displayName ? `${isolated(displayName)} (${name})` : name}
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
      {answering.error && <Notice kind="error">{messageOf(answering.error)}</Notice>}
      <div className="buttons">
        <Button isBusy={answering.isPending} onClick={() => answering.mutate(false)}>
          Deny
        </Button>
        <Button kind="primary" isBusy={answering.isPending} onClick={() => answering.mutate(true)}>
          Allow
        </Button>
      </div>
    </section>
  );
}
