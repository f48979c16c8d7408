/** On a narrow screen, the button that shows the filters behind the first one. */
import { Button } from "./button.tsx";
import "./filters-toggle.css";

interface FiltersToggleProps {
  readonly isOpen: boolean;
  /** How many of those filters are set. */
  readonly chosen: number;
  onChange(isOpen: boolean): void;
}

/** Stands behind the first field of a section with the classes `filters` and `folding`, and `open`. */
export function FiltersToggle({ isOpen, chosen, onChange }: FiltersToggleProps) {
  return (
    <Button className="filters-toggle" aria-expanded={isOpen} onClick={() => onChange(!isOpen)}>
      Filters{chosen > 0 && ` (${chosen})`}
    </Button>
  );
}
