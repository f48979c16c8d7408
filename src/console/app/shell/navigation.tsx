/** The navigation beside the page; on narrow screens it opens from a bar. */
import { Link, useNavigate } from "@tanstack/react-router";
import { usePerson } from "../api/session.ts";
import { Icon } from "../ui/icon.tsx";
import { useShortcut } from "./keys.ts";
import { OrganizationSelect } from "./organization-select.tsx";
import { PersonMenu } from "./person-menu.tsx";
import { type ConsolePlace, placesFor } from "./places.ts";

interface NavigationProps {
  readonly isOpen: boolean;
  onToggle(): void;
  onSearch(): void;
}

export function Navigation({ isOpen, onToggle, onSearch }: NavigationProps) {
  const who = usePerson();
  return (
    <>
      <header className="shell-bar">
        <button
          type="button"
          className="icon-button"
          aria-expanded={isOpen}
          aria-controls="navigation"
          aria-label="Navigation"
          onClick={onToggle}
        >
          <Icon path="M2 4h12M2 8h12M2 12h12" />
        </button>
        <span className="shell-brand">Tessera</span>
        <button type="button" className="icon-button" aria-label="Search" onClick={onSearch}>
          <Icon path="M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.7 10.7L14 14" />
        </button>
      </header>
      <aside className="navigation" id="navigation">
        <OrganizationSelect />
        <button type="button" className="navigation-search" onClick={onSearch}>
          <Icon path="M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.7 10.7L14 14" />
          <span>Search or go to</span>
          <kbd>{isMac() ? "⌘K" : "Ctrl K"}</kbd>
        </button>
        <nav aria-label="Pages">
          <ul>
            {placesFor(who).map((place) => (
              <NavigationItem key={place.to} place={place} />
            ))}
          </ul>
        </nav>
        <PersonMenu />
      </aside>
    </>
  );
}

function NavigationItem({ place: { label, to, key, icon } }: { readonly place: ConsolePlace }) {
  const navigate = useNavigate();
  const { organization } = usePerson();
  const params = { organization: organization?.name ?? "" };
  useShortcut(`g ${key}`, () => void navigate({ to, params }));
  return (
    <li>
      <Link
        to={to}
        params={params}
        activeOptions={{ exact: to === "/o/$organization", includeSearch: false }}
      >
        <Icon path={icon} />
        {label}
      </Link>
    </li>
  );
}

const isMac = (): boolean => /Mac|iPhone|iPad/.test(navigator.userAgent);
