/** What /metrics of a gateway says: each sample's name with its labels, and its value. */
export async function samplesOf({
  opsUrl,
}: {
  readonly opsUrl: string | null;
}): Promise<Map<string, number>> {
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const end = line.lastIndexOf(" ");
      return [line.slice(0, end), Number(line.slice(end + 1))];
    }),
  );
}
