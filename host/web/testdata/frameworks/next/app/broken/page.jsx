export default function Broken() {
  return <p>{[].missing.length}</p>
}
