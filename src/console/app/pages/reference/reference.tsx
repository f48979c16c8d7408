/** The reference of the platform's API: every operation of its OpenAPI document, by service. */
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type OpenApi, reference } from "../../api/reference.ts";
import { visitor } from "../../api/sign-in.ts";
import { SinglePage } from "../../shell/single-page.tsx";
import { SearchField } from "../../ui/search-field.tsx";
import { OperationDetails, type Place } from "./operation.tsx";
import "./reference.css";

const route = getRouteApi("/reference");

export function Reference() {
  const { data: document } = useSuspenseQuery(reference);
  const { data: person } = useSuspenseQuery(visitor);
  const { search = "" } = route.useSearch();
  const navigate = route.useNavigate();
  const places = placesOf(document).filter((place) => hasText(place, search));
  const services = document.tags.filter(({ name }) => placesOfService(places, name).length > 0);
  return (
    <SinglePage
      title="The platform's API"
      description={
        <>
          Version {document.info.version}. Calls need a token: <code>Authorization: Bearer …</code>{" "}
          For programs, the same is at <a href="/docs.json">/docs.json</a> (OpenAPI 3.1). Guides and
          references are in <a href="/docs/">the documentation</a>.
        </>
      }
      person={person ?? undefined}
      isWide
    >
      <SearchField
        label="Search operations"
        value={search}
        onChange={(text) => void navigate({ search: text === "" ? {} : { search: text } })}
      />
      {services.length === 0 && <p className="secondary">No operation has this text.</p>}
      {services.length > 1 && (
        <nav className="services" aria-label="Services">
          {services.map(({ name }) => (
            <a key={name} href={`#${name}`}>
              {name}
            </a>
          ))}
        </nav>
      )}
      {services.map(({ name, description }) => (
        <section key={name} className="card">
          <h2 id={name}>{name}</h2>
          <p className="secondary">{description}</p>
          {placesOfService(places, name).map((place) => (
            <OperationDetails key={place.operation.operationId} document={document} place={place} />
          ))}
        </section>
      ))}
    </SinglePage>
  );
}

function placesOf({ paths }: OpenApi): Place[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
}

const placesOfService = (places: readonly Place[], name: string): Place[] =>
  places.filter(({ operation }) => operation.tags[0] === name);

/** Whether each word is in the name, path or summary of the operation, in any case. */
function hasText({ path, method, operation }: Place, search: string): boolean {
  const text = `${method} ${path} ${operation.operationId} ${operation.summary}`.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
