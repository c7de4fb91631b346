require "action_controller/railtie"

class Page < Rails::Application
  config.eager_load = false
  config.consider_all_requests_local = true
  config.secret_key_base = "x"
  config.public_file_server.enabled = true
  config.logger = Logger.new($stdout)
  routes.append { root to: "pages#show"; get "broken", to: "pages#broken" }
end

class PagesController < ActionController::Base
  prepend_view_path "views"
  def show; end
  def broken = [].fetch(0)
end

Rails.application.initialize!
run Rails.application
