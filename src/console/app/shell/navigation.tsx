/** The navigation beside the page; on narrow screens it opens from a bar. */
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { signOut, titleOf, useOrganization, usePerson } from "../api/session.ts";
import { Icon } from "../ui/icon.tsx";
import { Brand } from "./brand.tsx";
import { useShortcut } from "./keys.ts";
import { type ConsolePlace, placesFor } from "./places.ts";
import { applyTheme, chosenTheme, THEMES } from "./theme.ts";

const MENU = "person-menu";

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
        <Brand />
        <button type="button" className="icon-button" aria-label="Search" onClick={onSearch}>
          <Icon path="M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.7 10.7L14 14" />
        </button>
      </header>
      <aside className="navigation" id="navigation">
        <Brand />
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

/** Chooses the organization whose pages are shown. */
function OrganizationSelect() {
  const { person } = usePerson();
  const name = useOrganization();
  const navigate = useNavigate();
  const all = person.organizations ?? [];
  return (
    <label className="organization-select">
      <span className="hidden">Organization</span>
      <select
        value={name}
        onChange={(event) =>
          void navigate({ to: "/o/$organization", params: { organization: event.target.value } })
        }
      >
        {all.map((one) => (
          <option key={one.name} value={one.name}>
            {titleOf(one)}
          </option>
        ))}
        {!all.some((one) => one.name === name) && <option value={name}>{name}</option>}
      </select>
    </label>
  );
}

/** The profile menu: tokens, account, theme, sign-out. */
function PersonMenu() {
  const { person, organization } = usePerson();
  const [theme, setTheme] = useState(chosenTheme);
  return (
    <div className="person">
      <button type="button" className="person-button" popoverTarget={MENU}>
        <span className="avatar" aria-hidden="true">
          {(person.email ?? "?").charAt(0).toUpperCase()}
        </span>
        <span className="person-email">{person.email}</span>
        <Icon path="M4 10l4-4 4 4" />
      </button>
      <div id={MENU} popover="auto" className="menu person-menu">
        <Link
          to="/o/$organization/tokens"
          params={{ organization: organization?.name ?? "" }}
          onClick={() => document.getElementById(MENU)?.hidePopover()}
        >
          API tokens
        </Link>
        <Link to="/account" onClick={() => document.getElementById(MENU)?.hidePopover()}>
          Account
        </Link>
        <a href="/docs/">Documentation</a>
        <Link to="/reference" onClick={() => document.getElementById(MENU)?.hidePopover()}>
          API reference
        </Link>
        <fieldset className="theme">
          <legend>Theme</legend>
          {THEMES.map((one) => (
            <label key={one}>
              <input
                type="radio"
                name="theme"
                checked={theme === one}
                onChange={() => {
                  applyTheme(one);
                  setTheme(one);
                }}
              />
              {one}
            </label>
          ))}
        </fieldset>
        <button type="button" onClick={() => void signOut()}>
          Sign out
        </button>
      </div>
    </div>
  );
}
