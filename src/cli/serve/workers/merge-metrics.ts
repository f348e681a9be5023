/** Prometheus texts of several workers as one: each sample gets the label `worker`, each family is in one place. */

interface Exposition {
  readonly worker: string;
  readonly text: string;
}

interface Family {
  /** HELP and TYPE are those of the first worker that has it. */
  readonly from: string;
  readonly head: string[];
  readonly samples: string[];
}

export function mergeExpositions(expositions: readonly Exposition[]): string {
  const families = new Map<string, Family>();
  for (const { worker, text } of expositions) {
    let family: Family | undefined;
    for (const line of text.split("\n")) {
      const [, name] = /^# (?:HELP|TYPE) (\S+)/.exec(line) ?? [];
      if (name !== undefined) {
        family = families.get(name) ?? { from: worker, head: [], samples: [] };
        families.set(name, family);
        if (family.from === worker) family.head.push(line);
      } else if (line !== "") family?.samples.push(labelled(line, worker));
    }
  }
  const lines = [...families.values()].flatMap(({ head, samples }) => [...head, ...samples, ""]);
  return lines.join("\n");
}

/** A name is followed by its labels, or by a space. */
function labelled(sample: string, worker: string): string {
  const end = /[{ ]/.exec(sample)?.index ?? sample.length;
  const name = sample.slice(0, end);
  return sample[end] === "{"
    ? `${name}{worker="${worker}",${sample.slice(end + 1)}`
    : `${name}{worker="${worker}"}${sample.slice(end)}`;
}
