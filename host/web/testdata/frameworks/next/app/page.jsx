"use client"
import { useEffect, useState } from "react"

export default function Page() {
  const [ready, setReady] = useState(false)
  useEffect(() => setReady(true), [])
  return <main><p id={ready ? "said" : undefined}>one</p><img id="pic" src="/pic.svg" /></main>
}
