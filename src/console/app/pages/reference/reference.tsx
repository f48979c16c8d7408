/** The reference of the platform's API: every operation of its OpenAPI document, by resource. */
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useDeferredValue } from "react";
import { reference } from "../../api/reference.ts";
import { useOrganization } from "../../api/session.ts";
import { SinglePage } from "../../shell/single-page.tsx";
import { Command } from "../../ui/command.tsx";
import { Field } from "../../ui/field.tsx";
import { Page } from "../../ui/page.tsx";
import { Prose } from "../../ui/prose.tsx";
import { Sectioned } from "../../ui/sections.tsx";
import { BEARER } from "../../ui/shell-command.ts";
import { useTyped } from "../../ui/use-typed.ts";
import { OperationDetails } from "./operation.tsx";
import { groupsOf } from "./operations.ts";
import type { ReferenceSearch } from "./reference-search.ts";
import "./reference.css";

const publicRoute = getRouteApi("/reference");
const organizationRoute = getRouteApi("/signed-in/o/$organization/reference");

const TITLE = "API reference";

/** For anyone: also for a person who is in no organization. */
export function Reference() {
  const { person } = publicRoute.useRouteContext();
  const { search } = publicRoute.useSearch();
  const navigate = publicRoute.useNavigate();
  return (
    <SinglePage title={TITLE} description={<About />} person={person} width="full">
      <Operations
        search={search}
        onSearch={(next) => void navigate({ search: next, replace: true })}
      />
    </SinglePage>
  );
}

/** In the shell of an organization that the person is in. */
export function OrganizationReference() {
  const organization = useOrganization();
  const { search } = organizationRoute.useSearch();
  const navigate = organizationRoute.useNavigate();
  return (
    <Page title={TITLE} crumbs={<a href="/docs/">Documentation</a>} description={<About />}>
      <Operations
        organization={organization}
        search={search}
        onSearch={(next) => void navigate({ search: next, replace: true })}
      />
    </Page>
  );
}

function About() {
  const { data: document } = useSuspenseQuery(reference);
  return (
    <>
      Version {document.info.version}. For programs, the same is at{" "}
      <a href="/docs.json">/docs.json</a> (OpenAPI 3.1). Guides are in{" "}
      <a href="/docs/">the documentation</a>.
    </>
  );
}

interface OperationsProps {
  /** Whose calls the examples are. Default: a name to replace. */
  readonly organization?: string;
  readonly search: string | undefined;
  onSearch(search: ReferenceSearch): void;
}

function Operations({ organization, search = "", onSearch }: OperationsProps) {
  const { data: document } = useSuspenseQuery(reference);
  const [text, setText] = useTyped(search, (next) => onSearch(next === "" ? {} : { search: next }));
  const wanted = useDeferredValue(text);
  const groups = groupsOf(document, wanted);
  const isWhole = wanted.trim() === "";
  return (
    <Sectioned
      label="Operations"
      isWhole={!isWhole}
      sections={[
        ...(isWhole ? [{ id: "begin", label: "Base URL" }] : []),
        ...groups.map(({ service, noun, places }) => ({
          id: service,
          label: noun,
          parts: places.map(({ act, operation }) => ({ id: operation.operationId, label: act })),
        })),
      ]}
      head={
        <Field label="Search operations">
          {(control) => (
            <input
              {...control}
              type="search"
              maxLength={200}
              placeholder="Such as cancel task"
              value={text}
              onChange={({ target }) => setText(target.value)}
            />
          )}
        </Field>
      }
    >
      <div className="reference">
        {isWhole && <Begin organization={organization} />}
        {groups.length === 0 && <p className="secondary">No operation has this text.</p>}
        {groups.map(({ service, noun, description, places }) => (
          <section key={service} id={service} className="card" aria-label={noun}>
            <header>
              <h2>{noun}</h2>
              <code className="secondary">{service}</code>
            </header>
            <Prose text={description} />
            {places.map((place) => (
              <OperationDetails
                key={place.operation.operationId}
                document={document}
                place={place}
                organization={organization}
              />
            ))}
          </section>
        ))}
      </div>
    </Sectioned>
  );
}

/** Where the API is, and a call of it. */
function Begin({ organization }: { readonly organization?: string | undefined }) {
  const base = `${location.origin}/api/v1`;
  const query = organization === undefined ? "" : `?organization=${organization}`;
  return (
    <section className="card" id="begin" aria-label="Base URL">
      <h2>Base URL</h2>
      <Command text={base} />
      <p className="secondary">
        Calls need a <a href="/docs/tokens.html">token</a>:
      </p>
      <Command text={`curl '${base}/deployments${query}' ${BEARER}`} />
    </section>
  );
}
