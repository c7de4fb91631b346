import { Component, provideZonelessChangeDetection } from "@angular/core"
import { bootstrapApplication } from "@angular/platform-browser"

@Component({ selector: "app-root", template: `<p id="said">one</p><img id="pic" src="pic.svg" />` })
class Page {}

bootstrapApplication(Page, { providers: [provideZonelessChangeDetection()] })
