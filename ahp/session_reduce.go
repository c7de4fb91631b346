package ahp

import "slices"

// ReduceSession returns a session's state after an accepted action. It changes nothing
// reachable from s.
func ReduceSession(s SessionState, a Action) SessionState {
	switch a := a.(type) {
	case SessionTitleChanged:
		s.Title = a.Title
	case SessionChatUpdated:
		s.Chats = updateChat(s.Chats, a)
	case SessionActiveClientSet:
		s.ActiveClients = upsert(s.ActiveClients, a.ActiveClient,
			func(c ActiveClient) bool { return c.ClientID == a.ActiveClient.ClientID })
	case SessionActiveClientRemoved:
		s.ActiveClients = without(s.ActiveClients, func(c ActiveClient) bool { return c.ClientID == a.ClientID })
	case SessionInputNeededSet:
		s.InputNeeded = upsert(s.InputNeeded, a.Request, func(r InputRequest) bool { return r.ID == a.Request.ID })
	case SessionInputNeededRemoved:
		if s.InputNeeded = without(s.InputNeeded, func(r InputRequest) bool { return r.ID == a.ID }); len(s.InputNeeded) == 0 {
			s.InputNeeded = nil
		}
	}
	return s
}

func updateChat(chats []ChatSummary, a SessionChatUpdated) []ChatSummary {
	i := slices.IndexFunc(chats, func(c ChatSummary) bool { return c.Resource == a.Chat })
	if i < 0 {
		return chats
	}
	chats = slices.Clone(chats)
	if a.Changes.Status != nil {
		chats[i].Status = *a.Changes.Status
	}
	if a.Changes.ModifiedAt != nil {
		chats[i].ModifiedAt = *a.Changes.ModifiedAt
	}
	return chats
}

// upsert returns a copy of items in which x replaces the first item that is the same, or
// is appended.
func upsert[T any](items []T, x T, same func(T) bool) []T {
	if i := slices.IndexFunc(items, same); i >= 0 {
		items = slices.Clone(items)
		items[i] = x
		return items
	}
	return append(slices.Clip(items), x)
}

// without returns items without the first one that is the same. It does not change items.
func without[T any](items []T, same func(T) bool) []T {
	i := slices.IndexFunc(items, same)
	if i < 0 {
		return items
	}
	return slices.Delete(slices.Clone(items), i, i+1)
}
