package main

import "github.com/spf13/cobra"

func watchCommand(a *app) *cobra.Command {
	return &cobra.Command{Use: "watch URL"}
}
